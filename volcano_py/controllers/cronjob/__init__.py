"""The cronjob controller: creates a Job at each scheduled time of a CronJob."""
