module example.com/block

replace (
	example.com/good => ../good
)
