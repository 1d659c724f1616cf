// Package pluginpb owns the ABI as a gRPC service, on the agent's side. It must not
// know what an agent does. All but this comment is a copy that go generate makes in
// abi/pluginpb.
package pluginpb
