"""What runs in the background of a shell ignores Ctrl-C, and so do its children: tests that interrupt one need it to hear."""

from __future__ import annotations

import signal
import threading

if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
