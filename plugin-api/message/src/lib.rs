//! One conversation message and one sequence of them, without I/O.
