package labkubernetes

// ciliumGroup is the API group of Cilium's own objects.
const ciliumGroup = "cilium.io"

// ciliumAgentRights are what Cilium's chart v1.18.5 gives its agents, with the values
// of ciliumSettings (cilium-agent/clusterrole.yaml).
func ciliumAgentRights() []rule {
	see := []string{"get", "list", "watch"}
	return []rule{
		{group: "networking.k8s.io", resources: []string{"networkpolicies"}, verbs: see},
		{group: "discovery.k8s.io", resources: []string{"endpointslices"}, verbs: see},
		{resources: []string{"namespaces", "services", "pods", "endpoints", "nodes"}, verbs: see},
		{group: "apiextensions.k8s.io", resources: []string{"customresourcedefinitions"}, verbs: see},
		{group: ciliumGroup, resources: []string{
			"ciliumloadbalancerippools", "ciliumbgppeeringpolicies", "ciliumbgpnodeconfigs", "ciliumbgpadvertisements", "ciliumbgppeerconfigs",
			"ciliumclusterwideenvoyconfigs", "ciliumclusterwidenetworkpolicies", "ciliumegressgatewaypolicies", "ciliumendpoints", "ciliumendpointslices",
			"ciliumenvoyconfigs", "ciliumidentities", "ciliumlocalredirectpolicies", "ciliumnetworkpolicies", "ciliumnodes", "ciliumnodeconfigs",
			"ciliumcidrgroups", "ciliuml2announcementpolicies", "ciliumpodippools",
		}, verbs: []string{"list", "watch"}},
		{group: ciliumGroup, resources: []string{"ciliumidentities", "ciliumendpoints", "ciliumnodes"}, verbs: []string{"create"}},
		{group: ciliumGroup, resources: []string{"ciliumidentities"}, verbs: []string{"update"}},
		{group: ciliumGroup, resources: []string{"ciliumendpoints"}, verbs: []string{"delete", "get"}},
		{group: ciliumGroup, resources: []string{"ciliumnodes", "ciliumnodes/status"}, verbs: []string{"get", "update"}},
		{group: ciliumGroup, resources: []string{
			"ciliumendpoints/status", "ciliumendpoints", "ciliuml2announcementpolicies/status", "ciliumbgpnodeconfigs/status",
		}, verbs: []string{"patch"}},
	}
}

// ciliumOperatorRights are what the same chart gives its operator
// (cilium-operator/clusterrole.yaml), but for making and changing the definitions of
// its objects, which the lab makes.
func ciliumOperatorRights() []rule {
	see := []string{"get", "list", "watch"}
	return []rule{
		{resources: []string{"pods"}, verbs: append([]string{"delete"}, see...)},
		{resources: []string{"configmaps"}, verbs: []string{"patch"}, names: []string{"cilium-config"}},
		{resources: []string{"nodes"}, verbs: []string{"list", "watch"}},
		{resources: []string{"nodes", "nodes/status"}, verbs: []string{"patch"}},
		{group: "discovery.k8s.io", resources: []string{"endpointslices"}, verbs: see},
		{resources: []string{"services/status"}, verbs: []string{"update", "patch"}},
		{resources: []string{"namespaces", "secrets", "services", "endpoints"}, verbs: see},
		{group: ciliumGroup, resources: []string{"ciliumnetworkpolicies", "ciliumclusterwidenetworkpolicies"},
			verbs: append([]string{"create", "update", "deletecollection", "patch"}, see...)},
		{group: ciliumGroup, resources: []string{"ciliumnetworkpolicies/status", "ciliumclusterwidenetworkpolicies/status"}, verbs: []string{"patch", "update"}},
		{group: ciliumGroup, resources: []string{"ciliumendpoints", "ciliumidentities"}, verbs: []string{"delete", "list", "watch"}},
		{group: ciliumGroup, resources: []string{"ciliumidentities"}, verbs: []string{"update"}},
		{group: ciliumGroup, resources: []string{"ciliumnodes"}, verbs: append([]string{"create", "update", "delete"}, see...)},
		{group: ciliumGroup, resources: []string{"ciliumnodes/status"}, verbs: []string{"update"}},
		{group: ciliumGroup, resources: []string{
			"ciliumendpointslices", "ciliumenvoyconfigs", "ciliumbgppeerconfigs", "ciliumbgpadvertisements", "ciliumbgpnodeconfigs",
		}, verbs: append([]string{"create", "update", "delete", "patch"}, see...)},
		{group: ciliumGroup, resources: []string{"ciliumbgpclusterconfigs/status", "ciliumbgppeerconfigs/status"}, verbs: []string{"update"}},
		{group: "apiextensions.k8s.io", resources: []string{"customresourcedefinitions"}, verbs: see},
		{group: ciliumGroup, resources: []string{
			"ciliumloadbalancerippools", "ciliumpodippools", "ciliumbgppeeringpolicies", "ciliumbgpclusterconfigs", "ciliumbgpnodeconfigoverrides",
			"ciliumbgppeerconfigs",
		}, verbs: see},
		{group: ciliumGroup, resources: []string{"ciliumpodippools"}, verbs: []string{"create"}},
		{group: ciliumGroup, resources: []string{"ciliumloadbalancerippools/status"}, verbs: []string{"patch"}},
		{group: "coordination.k8s.io", resources: []string{"leases"}, verbs: []string{"create", "get", "update"}},
	}
}
