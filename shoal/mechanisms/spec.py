"""Names in configurations that several statistics share."""

FEW_USERS = "few-users"
DISTRIBUTION = "distribution"  # statistic
PATTERN = "who contributes when, and in which group, is public"
VALUES, ADD_REMOVE = "values", "add-remove"  # relations
