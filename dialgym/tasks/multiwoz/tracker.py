"""The rule tracker: what the user says overwrites what was understood before."""

from collections.abc import Mapping, Sequence

from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.ontology import BOOKABLE, BOOKING, DOMAINS, INFORMABLE, SLOT_NAMES
from dialgym.tasks.multiwoz.types import EMPTY, Acts, DialogueAct, MultiWOZBelief
from dialgym.tasks.multiwoz.values import Vocabulary

TABLED = ("attraction", "hotel", "restaurant", "train")
"""The domains whose rows can be offered or booked."""
OFFERS = ("Inform", "Recommend")


class Tracker:
    """Updates beliefs; immutable and shared.

    Acts that are about no domain, or about no slot of theirs, change nothing.

    Args:
        vocabulary: the values that are known.
        rows_by_name: domain -> name -> row of its table.
        fidelity: keeps ``keeps_requests``, ``never_booked`` and ``loose_values``.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rows_by_name: Mapping[str, Mapping[str, int]],
        fidelity: Fidelity,
    ) -> None:
        self.vocabulary, self.rows_by_name, self.fidelity = vocabulary, rows_by_name, fidelity

    def update(self, belief: MultiWOZBelief, acts: Acts) -> None:
        """The user says `acts`; changes `belief`."""
        belief.user_acts = acts
        for intent, domain, slot, value in acts:
            names = SLOT_NAMES.get(domain)
            if names is None or domain == BOOKING:
                continue
            about = domain.lower()
            if about in TABLED:
                belief.domain = about
            if intent == "Inform":
                self._inform(belief, about, names.get(slot, slot), value)
            elif intent == "Request":
                name = names.get(slot)
                asked = belief.requests.get(about, ())
                if name is not None and name not in asked:
                    belief.requests[about] = (*asked, name)

    def _inform(self, belief: MultiWOZBelief, domain: str, slot: str, value: str) -> None:
        if slot in INFORMABLE[domain]:
            value = self.vocabulary.normalised(domain, slot, value)
        elif slot not in BOOKABLE[domain]:
            return
        belief.constraints.setdefault(domain, {})[slot] = value

    def heard(self, belief: MultiWOZBelief, acts: Acts) -> None:
        """The system says `acts`: what it books, offers and answers; changes `belief`."""
        belief.system_acts = acts
        for act in acts:
            domain = act.domain.lower()
            if act.slot == "Ref" and act.intent in ("Book", "OfferBooked"):
                self._book(belief, domain, act.value)
            elif domain in DOMAINS:
                self._offer(belief, domain, act)

    def _book(self, belief: MultiWOZBelief, domain: str, reference: str) -> None:
        booked = belief.domain if domain == BOOKING.lower() else domain
        if booked in TABLED and not self.fidelity.never_booked:
            belief.booked[booked] = reference

    def _offer(self, belief: MultiWOZBelief, domain: str, act: DialogueAct) -> None:
        if act.slot == "Name" and act.intent in OFFERS and domain in self.rows_by_name:
            row = self.rows_by_name[domain].get(act.value.lower())
            if row is not None:
                belief.offered[domain] = row
        asked = belief.requests.get(domain)
        if asked and act.intent in OFFERS and not self.fidelity.keeps_requests:
            name = SLOT_NAMES.get(act.domain, EMPTY).get(act.slot)
            if name in asked:
                _set_requests(belief, domain, [slot for slot in asked if slot != name])


def _set_requests(belief: MultiWOZBelief, domain: str, slots: Sequence[str]) -> None:
    if slots:
        belief.requests[domain] = tuple(slots)
    else:
        del belief.requests[domain]
