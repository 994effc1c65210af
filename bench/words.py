"""Words to make up texts of, so that no benchmark's text is needed."""

LINE = "the river runs past an old mill where two friends count apples and trade coins for bread each market day"
WORDS = tuple(LINE.split())
