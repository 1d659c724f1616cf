// Package mailbox owns the messages that a gateway keeps for members of realms until they
// have them: they are durable, once each, and in their order. It must not know a protocol,
// nor how members get their messages.
package mailbox
