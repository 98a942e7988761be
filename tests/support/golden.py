"""A race worked by hand, and lanes that lose for one reason each."""

from support.scripted import race, script, standard

from specviz.metrics import Factor, summarize
from specviz.traces import Reason, VerifyCurve

CURVE = VerifyCurve((1, 4), (0.10, 0.13), (0.0, 0.0))

# full acceptance; rejection in mid-block; nothing drafted; rejection at once; the run ends on an accepted draft
SPELLINGS = ("AAAb", "ARUc", "s", "RUc", "AAU")

GOLDEN = script(
    *SPELLINGS,
    times=((0.03, 0.12, 0.01), (0.03, 0.12, 0.02), (0.01, 0.10, 0.01), (0.02, 0.12, 0.02), (0.02, 0.12, 0.04)),
    overlaps=(0.9, 0.8, 0.7, 0.6, 0.2, 0.1, 0.5, 1.0),
)

GOLDEN_RACE = {"standard": standard(10, other=0.02), "draft": GOLDEN}


def golden(**options):
    reasons = {"draft": Reason.EOS, "standard": Reason.EOS}
    return summarize(race(GOLDEN_RACE, reasons=reasons, own_prefill={"draft": 0.25}, curve=CURVE, **options))


REJECTED = ("RUUUc",) * 9 + ("ARUUc",)

LOSING = {
    # alpha .1 and .0: 1 correct in 11 tested
    Factor.ALPHA: (REJECTED, (0.02, 0.1, 0.0), ((1, 5), (0.1, 0.1))),
    # three of four at each round, but the draft costs nine tenths of a pass for each token
    Factor.DRAFT_COST: (("AAARc",) * 5, (0.36, 0.1, 0.0), ((1, 5), (0.1, 0.1))),
    # a pass over five costs five passes
    Factor.VERIFY_COST: (("AAARc",) * 5, (0.004, 0.5, 0.0), ((1, 5), (0.1, 0.5))),
    # four tenths of a second lost around each round
    Factor.OVERHEAD: (("AAARc",) * 5, (0.004, 0.1, 0.4), ((1, 5), (0.1, 0.1))),
}
