//! A lower bound on the price of a fleet.
