package process

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strconv"
)

// descendants lists all living descendants of this process, without zombies.
func descendants() []int {
	children := map[int][]int{}
	for _, pid := range processes() {
		if parent, alive := parentOf(pid); alive {
			children[parent] = append(children[parent], pid)
		}
	}
	all := append([]int{}, children[os.Getpid()]...)
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// listedDescendants is a faster version of descendants: its cost does not grow with the
// other processes of the machine. It may miss processes that start or end meanwhile, so
// the killing does not use it.
func listedDescendants() []int {
	own := os.Getpid()
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(own) + "/children"); err != nil {
		return descendants() // the kernel keeps no list of children
	}
	all, seen := childrenOf(own), map[int]bool{}
	for i := 0; i < len(all); i++ {
		if !seen[all[i]] {
			seen[all[i]] = true
			all = append(all, childrenOf(all[i])...)
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// childrenOf lists the children of all threads of a process, zombies included.
func childrenOf(pid int) (pids []int) {
	for _, thread := range threadsOf(pid) {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + thread + "/children")
		if err != nil {
			continue
		}
		for _, field := range bytes.Fields(raw) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// processes lists all process ids.
func processes() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // it was only read
	names, _ := dir.Readdirnames(-1)   // a partial list is usable
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf returns a process's parent; alive is false for a zombie or a missing process.
func parentOf(pid int) (parent int, alive bool) {
	parent, _, alive = parentAndSession(pid)
	return parent, alive
}

// parentAndSession reads them from the fields behind the name: state, parent, group,
// session. See proc_pid_stat(5).
func parentAndSession(pid int) (parent, session int, alive bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name is in parentheses and may contain anything.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 4 || (fields[0][0] == 'Z' || fields[0][0] == 'X') && len(threadsOf(pid)) < 2 {
		return 0, 0, false // a main thread may end before the others
	}
	parent, err = strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0, 0, false
	}
	session, err = strconv.Atoi(string(fields[3]))
	return parent, session, err == nil
}

// threadsOf lists the thread ids of a process.
func threadsOf(pid int) (ids []string) {
	threads, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task") // a process that is gone has none
	for _, thread := range threads {
		ids = append(ids, thread.Name())
	}
	return ids
}

// memoryAndThreads returns the memory of processes, in bytes, and their number of threads:
// private and shared pages without a file, page tables, and what their sockets hold. Pages
// of files do not count, because processes share them.
func memoryAndThreads(pids []int) (memory int64, threads int) {
	for _, pid := range pids {
		ids := threadsOf(pid)
		for _, id := range ids {
			// All threads share the memory, but one that has ended shows none: a main thread
			// may end before the others.
			if used, ok := statusMemory("/proc/" + strconv.Itoa(pid) + "/task/" + id + "/status"); ok {
				memory += used
				threads += len(ids)
				break
			}
		}
	}
	return memory + socketMemory(pids), threads
}

// statusMemory sums the memory in a status file; ok is false if its thread has ended.
func statusMemory(path string) (memory int64, ok bool) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(raw) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "RssAnon", "RssShmem", "VmSwap", "VmPTE", "HugetlbPages":
			n, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
			if err == nil {
				memory, ok = memory+n<<10, true
			}
		}
	}
	return memory, ok
}

// userThreads counts the threads of this user, which count for RLIMIT_NPROC.
func userThreads() (n uint64) {
	own := os.Geteuid()
	for _, pid := range processes() {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		mine, count := false, uint64(0)
		for line := range bytes.Lines(raw) {
			name, value, _ := bytes.Cut(line, []byte(":"))
			fields := bytes.Fields(value)
			switch {
			case len(fields) == 0:
			case string(name) == "Uid":
				mine = string(fields[0]) == strconv.Itoa(own)
			case string(name) == "Threads":
				count, _ = strconv.ParseUint(string(fields[0]), 10, 32) // 0 for an unreadable number
			}
		}
		if mine {
			n += count
		}
	}
	return n
}
