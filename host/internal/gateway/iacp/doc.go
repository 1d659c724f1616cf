// Package iacp owns the gateway to IaCP 1.0: connections of partners, over which messages
// of their agents come in and messages of ours go out. It must not know the host's listener
// nor how a caller is authenticated.
package iacp
