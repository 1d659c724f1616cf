// Package toy owns a line protocol that only tests serve: the least that a gateway can be,
// to hold what all gateways share against it. It must not know the host; only tests import
// it.
//
// # The protocol
//
// A message is an object of JSON on one line, over HTTP at /toy/v1 of each side. Its
// members, all but id optional:
//
//	id       the id that its sender chose, 1 to 256 bytes; a repeat has the same
//	kind     ask (the default), tell, interrupt, answer or result
//	from     the sender's name
//	to       the name of an agent; without it the entrypoint
//	thread   the conversation; without it a new one
//	re       what an answer answers: the id of a question, or of a message; of a result,
//	         the id of a question that waits for a person
//	subject, text
//	parts    a list of {"name", "type", "data"}, data in base64
//	by       when the sender stops waiting (RFC 3339)
//	hops     how many hosts have passed it on
//	trace    a traceparent (https://www.w3.org/TR/trace-context/)
//	push     true if the answer is to be posted to the sender, too
//	x        any object; it comes back with the answer
//
// POST /toy/v1 takes a message and answers with a state, at once or when there is an
// answer, a question, or the server held the request long enough. A state is one line:
//
//	id, thread  of the message
//	state       working, asks, done, failed, timed_out or cancelled
//	from, subject, text, parts, x
//	questions   of asks: a list of {"id", "from", "text", "person"}, person true where a
//	            result is wanted
//
// GET /toy/v1/ID is the state now, DELETE /toy/v1/ID withdraws the message. GET
// /toy/v1/ID/lines?from=N is a stream of lines: {"n", "chunk"} are pieces of the answer from
// number N on, {"progress", "fraction"} is shown once, and the last line is a state: asks,
// or one that does not change any more. A stream that cannot go on ends with a refusal.
//
// A refusal is {"error", "text"} with a status: unknown 404, conflict 409, denied 403,
// invalid 400, large 413, busy 429, stopping 503, internal 500. The bearer token shows who
// calls; without a valid one the status is 401.
package toy
