package main

func Run() {}
