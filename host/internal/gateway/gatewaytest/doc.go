// Package gatewaytest owns what the tests of gateways share: a [Runtime] in memory whose
// agents are functions of the test, and the public listener's way with mounts. It must
// not know any protocol; only tests import it.
package gatewaytest
