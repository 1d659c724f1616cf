package cluster_test

import (
	"testing"

	"skep/host/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }
