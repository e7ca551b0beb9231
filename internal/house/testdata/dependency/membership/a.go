package membership

import _ "github.com/hashicorp/memberlist"
