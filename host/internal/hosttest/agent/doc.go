// Package agent owns the tests of a whole host in which agents do their work: with
// models, budgets, actions and parameters, in modules and in processes. It must not
// know how the host is built: it uses files, requests and data directories.
package agent
