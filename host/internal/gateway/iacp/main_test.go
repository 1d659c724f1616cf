package iacp_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(spokesEnv); addr != "" {
		if err := holdSpokes(addr); !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
