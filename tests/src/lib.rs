//! End-to-end, conformance and misfit tests of the whole product.
