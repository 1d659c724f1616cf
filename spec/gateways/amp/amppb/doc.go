// Package amppb owns AMP as a gRPC service. It must not know what a message means. The code is
// made of amp.proto.
package amppb

//go:generate go run ../../../../abi/pluginpb/generate amp.proto
