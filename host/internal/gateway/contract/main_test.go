package contract_test

import (
	"os"
	"testing"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/gatewaytest/toy/peer"
	"skep/host/internal/hosttest"
)

// peerEnv makes the test binary the peer of the toy protocol.
const peerEnv = "SKEP_TEST_TOY_PEER"

func TestMain(m *testing.M) {
	hosttest.Main(m, func() {
		if os.Getenv(peerEnv) != "" {
			peer.Main(os.Stdin, os.Stdout)
			os.Exit(0)
		}
		contract.Main(toyProtocol(), acpProtocol(), ampProtocol(), iacpProtocol(), a2aProtocol(), mcpProtocol(), uampProtocol())
	})
}
