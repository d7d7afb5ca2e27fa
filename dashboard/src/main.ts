import './styles/tokens.css';
import './styles/components.css';
import './styles/app.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { styled } from './styled';

await styled();
mount(App, { target: document.body });
