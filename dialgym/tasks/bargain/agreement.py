"""Agreement in English: texts that accept an offer, without a condition or a question."""

import re

_YES = "ok|okay|k|yes|yeah|yea|yep|yup|sure|fine|great|perfect|alright|cool|right|excellent|awesome"
_YES += "|absolutely|certainly|definitely|of course|correct|exactly|good|done"
_FILLERS = "oh|well|then|so|please|thanks?|thank you|by me|with me|for me|man|sir|now|very|thing"
_FILLERS += "|sounds|that's|that is|it is|i guess|both|much|to|me"
_GOOD = "good|great|fair|fine|perfect|reasonable|acceptable|agreeable|ok|okay|right|awesome"
_VERY = r"(?:(?:very|really|so|totally|just|quite|more than|pretty|all|about|only|like)\b ?)*"
_YES_FIRST = re.compile(rf"(?:{_YES})\b")
_WEAK = re.compile(rf"^(?=.*\b(?:{_YES})\b)(?:(?:{_YES}|{_FILLERS})\b ?)+$")
"""A sentence that says yes, and nothing else."""
_AGREES = re.compile(
    r"\b(?:(?:i|i'll|will|can|could|would|do|definitely|guess|we|i'd|gladly) (?:also |gladly )?"
    r"(?:accept|agree(?! to disagree)|take (?:it|that|the (?:deal|offer)))|agreed|accepted|sold"
    r"|i(?:'m| am) in|(?:you|you've|ya) got it|go for it|let'?s do (?:it|that|this)"
    r"|works? (?:out )?(?:just fine |perfectly |great )?(?:for|with) (?:me|us|both)"
    r"|(?:we|i)(?: can|'ll| will) do (?:that|it|this)"
    r"|can (?:live|work|deal|go) with (?:that|it|this)"
    r"|(?:i'm|i am|am|im) (?:\w+ )?(?:ok|okay|fine|good|happy|cool|content) with"
    r" (?:that|this|it|your))\b"
    r"|\b(?:it'?s|that'?s|it is|that is|this is|(?:you|we)(?: have|'ve got| got)|have|got|like"
    r"|that might have been|seems)(?: (?:yourself|ourselves))?"
    r" (?:a|an|the) (?:very |more than |pretty )?(?:\w+ )?deal\b"
    rf"|^(?:(?:{_YES}|{_FILLERS}|a|we have|let's|now we're talking|works?|same|and|fair|nice"
    r"|that|it)\b ?)*\b(?:deal|done|accept|agree|accepted)\b(?! (?:with|of|for|breaker|is)\b)"
    r"|(?<!\bthe )(?<!\bthis )(?<!\bthat )(?<!\ba )(?<!\bno )(?<!\bany )(?<!\bour )\bdeal$"
)
_LIKES = re.compile(
    rf"\bsounds? {_VERY}(?:(?:a )?(?:\w+ )?plan|{_GOOD})\b|\bfair enough\b|\bwill have to do\b"
    r"|\b(?:that|this|it|which)(?:'s|s| is| seems| will be|'ll be| would be| looks)"
    rf" {_VERY}(?:{_GOOD})(?! to (?:hear|know|see|meet))"
    r"(?: (?:to|by|with|for|enough|then|and|thank|i)\b|$)"
    r"|\b(?:that|this)(?:'ll| will| would|'d)? works?\b(?! out)|\b(?:'ll|will|would) work$"
)
_UNLESS = re.compile(
    r"\b(?:but|if|unless|however|except|though|although|only|instead|not|never|no|cannot|nor"
    r"|almost|could|better|rather|while|accept my|when|until|once|provided|as long|maybe|might"
    r"|think about|then i|quit|consider|how about|what about"
    r"|(?:(?:an)?other|first|initial|original|earlier|previous) (?:offer|deal)"
    r"|and (?:i(?:'ll| will)|we|you|it's|that's))\b|n't\b|\b(?:cant|dont|wont)\b"
)
"""A condition, a contrast or a refusal."""
_HARMLESS = re.compile(
    r"\b(?:no problem|no worries|why not|not bad|couldn't agree more|can't complain)\b"
)


def accepts(text: str, asked: bool) -> bool:
    """Tell if a text in lower case accepts an offer: without a condition, a refusal or a question.

    Args:
        text: what is said.
        asked: whether it answers a question, to which ``yes`` is no acceptance.
    """
    text = _HARMLESS.sub("", text).replace("`", "'")
    if _UNLESS.search(text):
        return False
    sentences = [one.strip(" ,") for one in re.split(r"[.!;]+|,", text) if one.strip(" ,")]
    if any(_AGREES.search(one) for one in sentences if "?" not in one):
        return True
    if asked or not sentences or "?" in text:
        return False
    return any(map(_LIKES.search, sentences)) or all(map(_WEAK.match, sentences))


def repeats(text: str) -> bool:
    """Tell if a text in lower case that repeats an offer agrees to it."""
    agrees = _YES_FIRST.match(text) or _AGREES.search(text) or _LIKES.search(text)
    return bool(agrees) and "?" not in text and not _UNLESS.search(text)
