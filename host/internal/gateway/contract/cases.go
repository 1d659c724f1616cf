package contract

// cases are the cases of the contract.
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
		{"15", "the peer's own error", (*suite).foreignError},
		{"19", "cancel out", (*suite).cancelOut},
	}
}
