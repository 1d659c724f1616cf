// Package sockets owns the open WebSockets of realms: how many each realm may have, on which
// of them an agent has spoken, and that they end with the host. It must not know what their
// messages are.
package sockets
