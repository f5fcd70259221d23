// etcd as a program of the wrapper module, so that Kubernetes' own requirements pick its version.
// It cannot be installed by itself: its module carries replace directives.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
