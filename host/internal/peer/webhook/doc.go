// Package webhook owns the delivery of messages about calls that wait for people to a URL of the
// operator: their form, their signature, and what an answer means. It must not know outboxes, retries,
// or who may answer.
//
// Requests have the form of https://www.standardwebhooks.com, signed with a shared secret (v1).
package webhook
