// Package uamppb owns UAMP as a gRPC service. It must not know what an envelope means. The
// code is made of uamp.proto.
package uamppb

//go:generate go run ../../../../abi/pluginpb/generate uamp.proto
