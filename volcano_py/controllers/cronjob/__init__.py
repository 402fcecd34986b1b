"""The cronjob controller: makes a Job whenever a CronJob's schedule says so."""
