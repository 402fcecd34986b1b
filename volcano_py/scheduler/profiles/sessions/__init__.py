"""The rules of profiles for gangs, which sessions place."""
