// Package signature owns signatures over the wrappers that hosts send each other:
// the keys, what is signed, and how long a signature is valid. It must not know
// routes, peers, or the content of a message.
//
// A signature is a detached JSON Web Signature with Ed25519 (RFC 7515, appendix
// F: https://www.rfc-editor.org/rfc/rfc7515#appendix-F). It is the member
// skep_signature of the wrapper's metadata, which hosts without support ignore.
// Signed is, in canonical JSON (RFC 8785:
// https://www.rfc-editor.org/rfc/rfc8785),
//
//	{"direction":"forward"|"back","target":SWARM,"wrapper":{…}}
//
// with the wrapper as it is sent, without its auth_token and without the
// signature itself. So it is valid for one route of one swarm, and for [Window]
// around its time: every attempt is signed anew.
package signature
