"""What runs in the background of a shell ignores Ctrl-C, and under nohup the end of its terminal; so do its children.
Tests that stop one need it to hear.
"""

from __future__ import annotations

import signal
import threading

HEARD = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}

if threading.current_thread() is threading.main_thread():
    for number, handler in HEARD.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
