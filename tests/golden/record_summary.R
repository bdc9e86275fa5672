# What R says about the data sets that record_summary.py writes.
# x is logit(p), with predictions of exactly 0 and 1 as calibrant treats them.
suppressMessages({library(rms); library(pROC); library(metafor); library(jsonlite)})
arguments <- commandArgs(trailingOnly = TRUE)

# The profile likelihood interval itself; confint interpolates it.
profile_interval <- function(d, which) {
  full <- glm(y ~ x, binomial, d, control = list(epsilon = 1e-14))
  drop <- function(value) {
    held <- if (which == 1) glm(y ~ x - 1, binomial, d, offset = rep(value, nrow(d)))
            else glm(y ~ 1, binomial, d, offset = value * d$x)
    deviance(held) - deviance(full) - qchisq(0.95, 1)
  }
  best <- coef(full)[which]
  reach <- 4 * sqrt(vcov(full)[which, which])
  c(uniroot(drop, c(best - reach, best), tol = 1e-10, extendInt = "downX")$root,
    uniroot(drop, c(best, best + reach), tol = 1e-10, extendInt = "upX")$root)
}

# The distribution of the number of events, by adding one row after the other.
count_distribution <- function(rates) {
  f <- 1
  for (r in rates) f <- c(f * (1 - r), 0) + c(0, f * r)
  f
}

# Mid-P limits of the expected number of events, along the line moved by a shift.
event_interval <- function(d) {
  line <- predict(glm(y ~ x, binomial, d, control = list(epsilon = 1e-14)))
  events <- sum(d$y)
  tail <- function(shift, above) {
    f <- count_distribution(plogis(line + shift))
    k <- seq_along(f) - 1
    sum(f[if (above) k > events else k < events]) + f[events + 1] / 2 - 0.025
  }
  reach <- 4 / sqrt(sum(plogis(line) * (1 - plogis(line))))
  low <- uniroot(tail, c(-reach, 0), above = TRUE, tol = 1e-9)$root
  high <- uniroot(tail, c(0, reach), above = FALSE, tol = 1e-9)$root
  c(sum(plogis(line + low)), sum(plogis(line + high)))
}

distances <- function(d) {
  gap <- abs(predict(loess(y ~ p, d)) - d$p)
  list(ICI = mean(gap), E50 = median(gap), E90 = unname(quantile(gap, 0.9)),
       Emax = max(gap))
}

one <- function(file) {
  d <- read.csv(file)
  v <- suppressWarnings(val.prob(d$p, d$y, pl = FALSE))
  line <- glm(y ~ x, binomial, d, control = list(epsilon = 1e-14))
  large <- glm(y ~ 1, binomial, d, offset = x, control = list(epsilon = 1e-14))
  area <- suppressMessages(ci.auc(roc(d$y, d$p, direction = "<"), method = "delong"))
  list(
    val.prob = as.list(v[c("C (ROC)", "R2", "Brier", "Intercept", "Slope", "Emax",
                           "E90", "Eavg")]),
    large = unname(coef(large)),
    large_confint = suppressMessages(unname(confint(large))),
    line = unname(coef(line)),
    confint = suppressMessages(unname(confint(line))),
    intercept_profile = profile_interval(d, 1),
    slope_profile = profile_interval(d, 2),
    events = event_interval(d),
    auroc = as.numeric(area),
    loess = distances(d))
}

files <- list.files(arguments[1], full.names = TRUE)
results <- lapply(files, one)
names(results) <- sub(".csv", "", basename(files))

values <- c(0.71, 1.02, 0.88, 1.31, 0.64)
errors <- c(0.12, 0.2, 0.09, 0.25, 0.11)
fit <- rma(values, sei = errors, method = "REML", test = "knha",
           control = list(threshold = 1e-12))
reach <- qt(0.975, length(values) - 2) * sqrt(fit$se^2 + fit$tau2)
pooled <- list(values = values, errors = errors,
               results = c(fit$b, fit$ci.lb, fit$ci.ub, fit$b - reach, fit$b + reach,
                           sqrt(fit$tau2)))

versions <- list(R = R.version.string, rms = as.character(packageVersion("rms")),
                 pROC = as.character(packageVersion("pROC")),
                 metafor = as.character(packageVersion("metafor")))
write_json(list(versions = versions, sets = results, pooled = pooled), arguments[2],
           digits = 12, auto_unbox = TRUE, pretty = TRUE)
