// Package envelope owns signatures over the wrappers that hosts send each other:
// the keys, what is signed, and how long a signature counts. It must not know
// routes, peers, or what a wrapper says.
//
// A signature is a detached JSON Web Signature (RFC 7515) with Ed25519. It stands
// in the wrapper's metadata as skep_signature, where hosts that know nothing of it
// pass it by. Signed is, in canonical JSON (RFC 8785),
//
//	{"direction":"forward"|"back","target":SWARM,"wrapper":{…}}
//
// with the wrapper as it is sent, without its auth_token and without the signature
// itself. So it holds for one route of one swarm, and for [Window] around the
// moment when it was made: every attempt is signed anew.
package envelope
