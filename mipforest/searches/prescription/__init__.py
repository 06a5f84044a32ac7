"""Prescriptive trees of depth one and two by enumeration."""
