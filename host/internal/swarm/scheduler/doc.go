// Package scheduler owns what schedules: the fair queue, the slots that turns run in,
// the CPU tokens without which none computes, and wakeups at a given time. It must
// not know what a slot, a token or a wakeup is used for.
package scheduler
