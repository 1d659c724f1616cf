// Package pluginpb owns the ABI as a gRPC service, for agents that run as a
// process of their own. It must not know how a process is started, nor what an op
// does. The code is made of plugin.proto, and copied with
// meet.go to the SDK for Go; the SDK for Python gets the messages alone.
package pluginpb

//go:generate go run ./generate plugin.proto ../../sdk/python/skep/wire.py ../../sdk/goproc/internal/pluginpb meet.go
