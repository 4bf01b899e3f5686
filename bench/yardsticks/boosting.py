"""Gradient boosting (LightGBM) on summaries of the same patients, all in one place.

For each kind of outcome, `fit` learns from the training patients, chooses the number of trees on the validation
patients (by what selvedge chooses its iteration by: AUC or loss; of several classes the loss), and returns what it says
of the test patients with the score that the validation patients gave it.
"""

import warnings

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightgbm

# Tried in turn; the validation patients choose, on average over the seeds.
CANDIDATES = (
    {"num_leaves": 4, "learning_rate": 0.03, "feature_fraction": 0.2, "min_data_in_leaf": 20},
    {"num_leaves": 8, "learning_rate": 0.03, "feature_fraction": 0.2, "min_data_in_leaf": 20},
    {"num_leaves": 16, "learning_rate": 0.03, "feature_fraction": 0.2, "min_data_in_leaf": 40},
    {"num_leaves": 32, "learning_rate": 0.03, "feature_fraction": 0.5, "min_data_in_leaf": 20},
    {"num_leaves": 64, "learning_rate": 0.03, "feature_fraction": 0.5, "min_data_in_leaf": 20},
)
COMMON = {"verbosity": -1, "deterministic": True, "force_row_wise": True, "bagging_fraction": 0.8, "bagging_freq": 1,
          "lambda_l2": 1.0}
ROUNDS, PATIENCE = 2000, 100
# What the validation patients choose by.
CRITERIA = {"death": "AUC", "labels": "AUC", "stay": "−squared error", "classes": "−loss", "survival": "−loss"}


class Boosting:
    def __init__(self, threads, rounds=ROUNDS):
        self.threads, self.rounds = threads, rounds

    def booster(self, settings, objective, metric, train, validation, **more):
        settings = {**COMMON, **settings, **objective, "metric": metric, "num_threads": self.threads}
        learnt = lightgbm.Dataset(*train, **more)
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        booster = lightgbm.train(settings, learnt, self.rounds, [learnt.create_valid(*validation)], callbacks=[stop])
        return booster, booster.best_score["valid_0"][metric], booster.best_iteration

    def fit(self, kind, settings, train, validation, test, ends=None):
        """(answers on test, score on validation of which more is better, trees). Parts are (features, truth)."""
        return getattr(self, kind)(settings, train, validation, test[0], ends)

    def death(self, settings, train, validation, test, _):
        booster, score, trees = self.booster(settings, {"objective": "binary"}, "auc", train, validation)
        return booster.predict(test), score, trees

    def labels(self, settings, train, validation, test, _):
        """A model for each label, from those of whom it is known."""
        results = []
        for label in range(train[1].shape[1]):
            known = lambda part: (part[0][~np.isnan(part[1][:, label])], part[1][~np.isnan(part[1][:, label]), label])
            results.append(self.death(settings, known(train), known(validation), test, None))
        answers, scores, trees = zip(*results)
        return np.stack(answers, axis=1), float(np.mean(scores)), sum(trees)

    def stay(self, settings, train, validation, test, _):
        booster, score, trees = self.booster(settings, {"objective": "regression"}, "l2", train, validation)
        return booster.predict(test), -score, trees

    def classes(self, settings, train, validation, test, _):
        objective = {"objective": "multiclass", "num_class": int(train[1].max()) + 1}
        booster, score, trees = self.booster(settings, objective, "multi_logloss", train, validation)
        return booster.predict(test), -score, trees

    def survival(self, settings, train, validation, test, ends):
        """Hazards of the intervals that selvedge uses, with its loss: a row for each interval that a patient came to,
        with the interval as one more feature. The risk is one minus the mean of the curve."""
        train, validation = came_to(*train, ends), came_to(*validation, ends)
        booster, score, trees = self.booster(settings, {"objective": "binary"}, "binary_logloss", train, validation)
        hazards = [booster.predict(with_interval(test, k)) for k in range(len(ends))]
        return 1 - np.cumprod(1 - np.stack(hazards, axis=1), axis=1).mean(axis=1), -score, trees


def with_interval(features, interval):
    return np.column_stack([features, np.full(len(features), float(interval))])


def came_to(features, truth, ends):
    """For each interval, those who came to it without the event, and whether the event was in it. Who left within an
    interval says nothing about it."""
    rows, labels = [], []
    time, event = truth[:, 0], (truth[:, 1] > 0.5) & (truth[:, 0] <= ends[-1])
    for k, end in enumerate(ends):
        start = ends[k - 1] if k else -np.inf
        there = (time > start) & (event | (time >= end))
        rows.append(with_interval(features[there], k))
        labels.append((event & (time <= end))[there].astype(float))
    return np.vstack(rows), np.concatenate(labels)
