// Package contract owns what every gateway must do, as thirty cases against a real host:
// a protocol gives the suite a client, a foreign agent and the cases that it cannot
// express, with a reason each. It must not know any protocol; only tests import it.
package contract
