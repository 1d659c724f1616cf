// Package grpcmessage owns messages of AMP as gRPC carries them: how the text of one is found in
// the bytes of a Message of amp.proto, and how a text becomes one. It must not know who sends a
// message, nor what is in a text.
package grpcmessage
