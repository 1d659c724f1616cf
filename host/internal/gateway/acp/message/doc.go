// Package message owns the messages of ACP 1.0 as Go: their types, how they are read and
// written, and which answer each expects. All but this file is generated from the
// declarations in spec/gateways/acp. It must not know transports, nor who calls.
package message

//go:generate go run skep/host/cmd/skep acp compile ../../../../../spec/gateways/acp/acp-1.0.acp --lang go --package message -o .
