"""How good predictions are, where each patient counts so often.

Every measure takes what was said, what was so, and weights [resamples, patients]: how often each patient was drawn. It
returns one number for each resample. The definitions are those of `selvedge evaluate`, so that figures can be compared;
bench/pooled checks that they agree.
"""

import numpy as np

# Resamples that are worked on at a time: memory stays below a few hundred megabytes.
CHUNK = 250


def draws(groups, count, seed):
    """Weights of `count` bootstrap resamples, below a first row in which everybody counts once.

    Those with the same entry in `groups` (pieces of one recording) are drawn together.
    """
    _, group = np.unique(groups, return_inverse=True)
    number = group.max() + 1
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(number, np.full(number, 1 / number), size=count)
    return np.vstack([np.ones(number), counts])[:, group].astype(np.float32)


def interval(resampled, share=0.95):
    """The percentile interval of a measure; the first entry is that of the patients themselves."""
    rest = (1 - share) / 2
    return [float(bound) for bound in np.nanquantile(resampled[1:], [rest, 1 - rest])]


def in_chunks(measure):
    """Lets a measure see few resamples at a time, in double precision."""
    def of(said, so, weights):
        chunks = range(0, len(weights), CHUNK)
        return np.concatenate([measure(said, so, weights[at:at + CHUNK].astype(np.float64)) for at in chunks])
    return of


def counted(said, so, weights):
    """Positives and negatives for each distinct score, from the lowest to the highest."""
    known = ~np.isnan(so)
    order = np.flatnonzero(known)[np.argsort(said[known], kind="stable")]
    starts = np.flatnonzero(np.diff(said[order], prepend=-np.inf) > 0)
    sorted_weights = weights[:, order]
    positive = np.add.reduceat(sorted_weights * so[order], starts, axis=1)
    return positive, np.add.reduceat(sorted_weights, starts, axis=1) - positive


@in_chunks
def auroc(said, so, weights):
    """How often who is positive has the higher score than who is not; equal scores count as half."""
    positive, negative = counted(said, so, weights)
    below = np.cumsum(negative, axis=1) - negative / 2
    return (positive * below).sum(axis=1) / (positive.sum(axis=1) * negative.sum(axis=1))


@in_chunks
def average_precision(said, so, weights):
    """The precision at each positive, on average; those of one score count together."""
    positive, negative = counted(said, so, weights)
    positive, negative = positive[:, ::-1], negative[:, ::-1]
    found = np.cumsum(positive, axis=1)
    all_of_them = found + np.cumsum(negative, axis=1)
    precision = np.divide(found, all_of_them, out=np.zeros_like(found), where=all_of_them > 0)
    return (positive * precision).sum(axis=1) / found[:, -1]


@in_chunks
def mean_absolute_error(said, so, weights):
    return weights @ np.abs(said - so) / weights.sum(axis=1)


def mean_square(said, so, weights):
    return weights @ np.square(said - so) / weights.sum(axis=1)


@in_chunks
def root_mean_square(said, so, weights):
    return np.sqrt(mean_square(said, so, weights))


@in_chunks
def explained(said, so, weights):
    """R², the share of the variance that is explained."""
    all_of_them = weights.sum(axis=1)
    variance = weights @ np.square(so) / all_of_them - np.square(weights @ so / all_of_them)
    return 1 - mean_square(said, so, weights) / variance


@in_chunks
def accuracy(said, so, weights):
    return weights @ (said.argmax(axis=1) == so) / weights.sum(axis=1)


def concordance(said, so, weights):
    """Harrell's: of two patients of whom it is known who had the event first, how often that one has the higher risk.

    `so` is [patients, 2]: a time, and whether the event was then. Who left at the very time of an event was there
    longer than that. Equal risks count as half.
    """
    time, event = so[:, 0], so[:, 1] > 0.5
    own, of = time[event, None], said[event, None]
    longer = (time > own) | ((time == own) & ~event)
    won = longer * ((of > said) + 0.5 * (of == said))
    # The sums stay far below 2^24 for each event, so single precision is exact until they are added up.
    won, longer = won.astype(np.float32).T, longer.astype(np.float32).T
    drawn = weights[:, event].astype(np.float64)
    return (drawn * (weights @ won)).sum(axis=1) / (drawn * (weights @ longer)).sum(axis=1)


def macro(measure):
    """The mean of a measure of yes and no over labels, or over classes against the rest."""
    def of(said, so, weights):
        if so.ndim == 1:
            so = (so[:, None] == np.arange(said.shape[1])).astype(float)
        return np.mean([measure(said[:, k], so[:, k], weights) for k in range(said.shape[1])], axis=0)
    return of
