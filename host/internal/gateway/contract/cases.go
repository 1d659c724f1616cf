package contract

// lastCases need the host for themselves, in this order.
func lastCases() []contractCase {
	return []contractCase{
		{"28", "refused before a durable write", (*suite).refusedEarly},
		{"29", "no secret is written", (*suite).noSecrets},
		{"30", "nothing is left", (*suite).leavesNothing},
	}
}

// cases are the cases of the contract that share a host, all at once.
func cases() []contractCase {
	return []contractCase{
		{"01", "ask and answer in", (*suite).askIn},
		{"02", "ask and answer out", (*suite).askOut},
		{"03", "tell in, no answer owed", (*suite).tellIn},
		{"04", "tell out", (*suite).tellOut},
		{"05", "an agent that cannot complete answers", (*suite).answerWithoutTargets},
		{"06", "the agent asks its caller back", (*suite).askBack},
		{"07", "the second message sees the history", (*suite).continueThread},
		{"08", "two realms, one conversation id", (*suite).twoRealms},
		{"09", "two tenants, and erase", (*suite).twoTenants},
		{"10", "unknown and unexposed are the same", (*suite).unknownAgents},
		{"11", "a repeat has the same answer", (*suite).repeat},
		{"12", "other bytes under a used id", (*suite).conflict},
		{"13", "a spoofed sender", (*suite).spoofedSender},
		{"14", "a revoked token ends streams", (*suite).revokedToken},
		{"15", "the peer's own error", (*suite).foreignError},
		{"16", "trap, limit, budget", (*suite).agentFails},
		{"17", "deadlines", (*suite).deadlines},
		{"18", "cancel in", (*suite).cancelIn},
		{"19", "cancel out", (*suite).cancelOut},
		{"20", "progress, pieces, end", (*suite).pieces},
		{"21", "a reader that stops", (*suite).stoppedReader},
		{"22", "kill -9", (*suite).kill},
		{"23", "a dead peer comes back", (*suite).deadPeer},
		{"24", "a graceful stop", (*suite).gracefulStop},
		{"25", "binary content", (*suite).binary},
		{"26", "unknown members", (*suite).unknownMembers},
		{"27", "a peer that echoes everything", (*suite).echoPeer},
		{"31", "line ends, paths and endless texts in ids", (*suite).hostileIDs},
		{"32", "hostile values in place of each member", (*suite).hostileMembers},
		{"33", "streams that nobody reads to their end", (*suite).idleStreams},
		{"29", "one audit line for a refusal, and a logged line for each message", (*suite).auditLines},
	}
}
