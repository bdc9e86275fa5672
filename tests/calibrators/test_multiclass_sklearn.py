"""scikit-learn's own checks, as far as they apply to a table of predictions."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import calibrant as cb

OTHER_LABELS = "its labels are not the columns of its table"
OWN_WORDS = "our error has other words"
AT_ONCE = "a name that does not exist is refused at once, not only in fit"
NOT_PASSED = {
    "check_estimators_overwrite_params": OTHER_LABELS,
    "check_estimators_fit_returns_self": OTHER_LABELS,
    "check_readonly_memmap_input": OTHER_LABELS,
    "check_sample_weights_pandas_series": OTHER_LABELS,
    "check_sample_weights_not_an_array": OTHER_LABELS,
    "check_sample_weights_shape": OTHER_LABELS,
    "check_sample_weights_not_overwritten": OTHER_LABELS,
    "check_all_zero_sample_weights_error": OWN_WORDS,
    "check_complex_data": OWN_WORDS,
    "check_dtype_object": OWN_WORDS,
    "check_estimators_empty_data_messages": OWN_WORDS,
    "check_fit2d_1feature": OWN_WORDS,
    "check_fit2d_predict1d": OWN_WORDS,
    "check_n_features_in_after_fitting": OWN_WORDS,
    "check_estimator_sparse_tag": "no sparse tables",
    "check_estimator_sparse_array": OWN_WORDS,
    "check_estimator_sparse_matrix": OWN_WORDS,
    "check_set_params": AT_ONCE,
    "check_do_not_raise_errors_in_init_or_set_params": AT_ONCE,
    "check_sample_weight_equivalence_on_dense_data": "its few rows are separable",
    "check_array_api_input": "skipped by scikit-learn",
}


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit")  # see base.py
@pytest.mark.parametrize("method", ["vector", "sms"])
def test_all_other_checks_pass(method):
    calibrator = cb.make_calibrator(method, scale="logit")
    failed = {}
    for estimator, check in estimator_checks_generator(calibrator):
        name = getattr(check, "func", check).__name__
        try:
            check(estimator)
        except Exception as error:  # noqa: BLE001  (whatever a check raises)
            failed[name] = str(error)
    assert {k: v for k, v in failed.items() if k not in NOT_PASSED} == {}
