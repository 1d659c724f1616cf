package process

// Exit codes of a guard that are not the process's own.
const (
	exitSetup   = 126 // the start failed
	exitDenied  = 95  // the program may not be executed
	exitMissing = 96  // the program or its interpreter does not exist
	exitMemory  = 97  // too much memory
	exitTasks   = 98  // too many processes and threads
	exitQuota   = 99  // too much in its directory
)
