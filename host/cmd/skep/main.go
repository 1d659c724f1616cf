// Command skep hosts agent swarms.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"skep/host/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Main(context.Background(), cli.OS(signals)))
}
