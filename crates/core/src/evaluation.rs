//! Judging a run at a global aggregation: its evaluation, and whether a target or a budget of `[stop]` ends it.

use crate::evaluate;
use crate::run::Ending;
use crate::state::{Best, Evaluation, Progress, State, Validation};
use crate::task::Task;

/// Whether θ is to be evaluated, now that it is aggregated.
pub(crate) fn is_due(task: &Task<'_>, progress: &Progress) -> bool {
    let every = task.experiment.train.evaluate_every.unwrap_or(1);
    progress
        .evaluated
        .is_none_or(|last| progress.t - last >= every)
}

/// Evaluates θ, and keeps it if it is the best on the validation samples so far.
pub(crate) fn evaluate(task: &Task<'_>, state: &mut State) -> Evaluation {
    let State {
        progress,
        theta,
        best,
        ..
    } = state;
    let (architecture, dataset) = (&task.architecture, task.given);
    let (mut loss_sum, mut samples) = (0.0, 0);
    for (m, group) in dataset.groups.iter().enumerate() {
        let rows = task.loss_rows.as_ref().map(|rows| &rows[m][..]);
        loss_sum += evaluate::predict(architecture, theta, &group.samples, rows).loss_sum;
        samples += rows.map_or(group.samples.len(), <[u32]>::len);
    }
    let loss_train = loss_sum / samples as f64;
    let (loss_test, test) = evaluate::score(architecture, theta, &dataset.test);
    let validation = (!dataset.validation.is_empty()).then(|| {
        let (loss_validation, metrics) = evaluate::score(architecture, theta, &dataset.validation);
        let score = metrics.auc.unwrap_or(metrics.accuracy);
        let finite = loss_train.is_finite() && loss_validation.is_finite();
        if finite && progress.best.is_none_or(|best| score > best.score) {
            progress.best = Some(Best {
                t: progress.t,
                score,
            });
            best.get_or_insert_with(|| theta.clone()).copy_from(theta);
        }
        Validation {
            loss_validation,
            auc_validation: metrics.auc,
            f1_validation: metrics.f1,
            accuracy_validation: metrics.accuracy,
        }
    });
    progress.evaluated = Some(progress.t);
    let per_group = |bytes: f64| bytes / dataset.groups.len() as f64;
    Evaluation {
        t: progress.t,
        p: progress.segment.global_interval,
        q: progress.segment.local_interval,
        eta: progress.segment.learning_rate_at(progress.t),
        loss_train,
        loss_test: (!dataset.test.is_empty()).then_some(loss_test),
        test,
        bytes_paper: per_group(progress.ledger.paper()),
        bytes_exact: per_group(progress.ledger.exact() as f64),
        seconds: progress.clock.seconds(),
        validation,
    }
}

/// The budget of `[stop]` that is used up, if one is.
pub(crate) fn budget(task: &Task<'_>, progress: &Progress) -> Option<Ending> {
    let stop = &task.experiment.stop;
    let bytes = progress.ledger.exact() as f64 / task.given.groups.len() as f64;
    let used = [
        ("stop.bytes", stop.bytes, bytes),
        ("stop.seconds", stop.seconds, progress.clock.seconds()),
    ];
    let over = used
        .into_iter()
        .find(|(_, budget, value)| budget.is_some_and(|b| *value >= b));
    over.map(|(key, _, value)| Ending::Reached { key, value })
}

/// The target of `[stop]` that is reached, if one is.
pub(crate) fn target(task: &Task<'_>, evaluation: &Evaluation) -> Option<Ending> {
    let (stop, test) = (&task.experiment.stop, &evaluation.test);
    if stop
        .loss
        .is_some_and(|target| evaluation.loss_train <= target)
    {
        return Some(Ending::Reached {
            key: "stop.loss",
            value: evaluation.loss_train,
        });
    }
    let scores = [
        ("stop.auc", stop.auc, test.auc.unwrap_or(0.0)),
        ("stop.precision", stop.precision, test.precision),
        ("stop.recall", stop.recall, test.recall),
        ("stop.f1", stop.f1, test.f1),
        ("stop.accuracy", stop.accuracy, test.accuracy),
    ];
    let reached = scores
        .into_iter()
        .find(|(_, target, value)| target.is_some_and(|t| *value >= t));
    reached.map(|(key, _, value)| Ending::Reached { key, value })
}
