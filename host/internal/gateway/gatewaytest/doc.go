// Package gatewaytest owns what the tests of gateways share: a [Runtime] in memory whose
// agents are functions of the test, the public listener's way with mounts, and what the
// process holds. It must not know any protocol; only tests import it.
package gatewaytest
