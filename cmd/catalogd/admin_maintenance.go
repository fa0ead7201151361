package main

var maintenanceVerbs = []*command{}
