package result

import "time"

// ServiceUpdateName is the name of the workload that changes the endpoint of a service while
// connections are made to it.
const ServiceUpdateName = "service_update"

// ServiceChange is one change of a service's endpoint.
type ServiceChange struct {
	// Began is when the service proxy was given it, on the machine's monotonic clock,
	// nanoseconds.
	Began int64
	// Took is how long the service proxy worked on it.
	Took time.Duration
}
