package mute
