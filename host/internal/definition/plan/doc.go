// Package plan owns what differs between two configurations, and whether the
// newer one allows more. It must not know a host that runs, and shows no secret:
// it only shows that two differ.
package plan
